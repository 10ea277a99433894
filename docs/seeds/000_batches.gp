# gnuplot 000_batches.gp makes 000_batches.svg.
set encoding utf8
set terminal svg size 800,600 noenhanced font 'sans,11' background 'white'
set output '000_batches.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "messages"
set format x '%.0f'
set xtics rotate by -40
set multiplot layout 2,2 title "Batches of such messages (not in the paper)"
unset key
set title "message: 16 KiB"
set format y '%.0s %cs'
plot '000_batches.dat' index 0 using 2:4 with linespoints lt 1 title "Sarwate, one thread", \
  '000_batches.dat' index 0 using 2:5 with linespoints lt 2 title "Sarwate, all threads", \
  '000_batches.dat' index 0 using 2:6 with linespoints lt 3 title "library, one thread", \
  '000_batches.dat' index 0 using 2:7 with linespoints lt 4 title "library, all threads", \
  '000_batches.dat' index 0 using 2:8 with linespoints lt 5 title "GPU kernels", \
  '000_batches.dat' index 0 using 2:9 with linespoints lt 6 title "GPU with copies"
set title "message: 64 KiB"
set format y '%.0s %cs'
plot '000_batches.dat' index 1 using 2:4 with linespoints lt 1 title "Sarwate, one thread", \
  '000_batches.dat' index 1 using 2:5 with linespoints lt 2 title "Sarwate, all threads", \
  '000_batches.dat' index 1 using 2:6 with linespoints lt 3 title "library, one thread", \
  '000_batches.dat' index 1 using 2:7 with linespoints lt 4 title "library, all threads", \
  '000_batches.dat' index 1 using 2:8 with linespoints lt 5 title "GPU kernels", \
  '000_batches.dat' index 1 using 2:9 with linespoints lt 6 title "GPU with copies"
set title "message: 2 MiB"
set format y '%.0s %cs'
plot '000_batches.dat' index 2 using 2:4 with linespoints lt 1 title "Sarwate, one thread", \
  '000_batches.dat' index 2 using 2:5 with linespoints lt 2 title "Sarwate, all threads", \
  '000_batches.dat' index 2 using 2:6 with linespoints lt 3 title "library, one thread", \
  '000_batches.dat' index 2 using 2:7 with linespoints lt 4 title "library, all threads", \
  '000_batches.dat' index 2 using 2:8 with linespoints lt 5 title "GPU kernels", \
  '000_batches.dat' index 2 using 2:9 with linespoints lt 6 title "GPU with copies"
unset title
unset xlabel
unset logscale
unset tics
unset grid
unset border
set xrange [0:1]
set yrange [0:1]
set key center center
plot NaN with linespoints lt 1 title "Sarwate, one thread", \
  NaN with linespoints lt 2 title "Sarwate, all threads", \
  NaN with linespoints lt 3 title "library, one thread", \
  NaN with linespoints lt 4 title "library, all threads", \
  NaN with linespoints lt 5 title "GPU kernels", \
  NaN with linespoints lt 6 title "GPU with copies"
unset multiplot
