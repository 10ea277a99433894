# gnuplot 002_authenticated.gp makes 002_authenticated.svg.
set encoding utf8
set terminal svg size 800,600 noenhanced font 'sans,11' background 'white'
set output '002_authenticated.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "messages"
set format x '%.0f'
set xtics rotate by -40
set multiplot layout 2,2 title "Authenticated encryption, which the paper leaves to later work: AES-256-GCM"
unset key
set title "blocks a message: 16"
set format y '%.0s %cbit/s'
plot '002_authenticated.dat' index 0 using 2:4 with linespoints lt 1 title "library, one thread", \
  '002_authenticated.dat' index 0 using 2:5 with linespoints lt 2 title "library, all threads", \
  '002_authenticated.dat' index 0 using 2:6 with linespoints lt 3 title "GPU kernels", \
  '002_authenticated.dat' index 0 using 2:7 with linespoints lt 4 title "GPU with copies"
set title "blocks a message: 512"
set format y '%.0s %cbit/s'
plot '002_authenticated.dat' index 1 using 2:4 with linespoints lt 1 title "library, one thread", \
  '002_authenticated.dat' index 1 using 2:5 with linespoints lt 2 title "library, all threads", \
  '002_authenticated.dat' index 1 using 2:6 with linespoints lt 3 title "GPU kernels", \
  '002_authenticated.dat' index 1 using 2:7 with linespoints lt 4 title "GPU with copies"
set title "blocks a message: 16,384"
set format y '%.0s %cbit/s'
plot '002_authenticated.dat' index 2 using 2:4 with linespoints lt 1 title "library, one thread", \
  '002_authenticated.dat' index 2 using 2:5 with linespoints lt 2 title "library, all threads", \
  '002_authenticated.dat' index 2 using 2:6 with linespoints lt 3 title "GPU kernels", \
  '002_authenticated.dat' index 2 using 2:7 with linespoints lt 4 title "GPU with copies"
unset title
unset xlabel
unset logscale
unset tics
unset grid
unset border
set xrange [0:1]
set yrange [0:1]
set key center center
plot NaN with linespoints lt 1 title "library, one thread", \
  NaN with linespoints lt 2 title "library, all threads", \
  NaN with linespoints lt 3 title "GPU kernels", \
  NaN with linespoints lt 4 title "GPU with copies"
unset multiplot
