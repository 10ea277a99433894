# gnuplot 003_figure_11.gp makes 003_figure_11.svg.
set encoding utf8
set terminal svg size 800,600 noenhanced font 'sans,11' background 'white'
set output '003_figure_11.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "keys at a time"
set format x '%.0f'
set xtics rotate by -40
set multiplot layout 2,2 title "Figure 11: RSA key pairs, seconds for each"
unset key
set title "modulus, bits: 1,024"
set format y '%.0s %cs'
plot '003_figure_11.dat' index 0 using 2:3 with linespoints lt 1 title "paper: CPU", \
  '003_figure_11.dat' index 0 using 2:4 with linespoints lt 2 title "paper: GPU", \
  '003_figure_11.dat' index 0 using 2:6 with linespoints lt 3 title "plain code, one thread", \
  '003_figure_11.dat' index 0 using 2:7 with linespoints lt 4 title "library, one thread", \
  '003_figure_11.dat' index 0 using 2:8 with linespoints lt 5 title "library, all threads", \
  '003_figure_11.dat' index 0 using 2:9 with linespoints lt 6 title "GPU kernels", \
  '003_figure_11.dat' index 0 using 2:10 with linespoints lt 7 title "GPU with copies"
set title "modulus, bits: 2,048"
set format y '%.0s %cs'
plot '003_figure_11.dat' index 1 using 2:6 with linespoints lt 3 title "plain code, one thread", \
  '003_figure_11.dat' index 1 using 2:7 with linespoints lt 4 title "library, one thread", \
  '003_figure_11.dat' index 1 using 2:8 with linespoints lt 5 title "library, all threads", \
  '003_figure_11.dat' index 1 using 2:9 with linespoints lt 6 title "GPU kernels", \
  '003_figure_11.dat' index 1 using 2:10 with linespoints lt 7 title "GPU with copies"
unset title
unset xlabel
unset logscale
unset tics
unset grid
unset border
set xrange [0:1]
set yrange [0:1]
set key center center
plot NaN with linespoints lt 1 title "paper: CPU", \
  NaN with linespoints lt 2 title "paper: GPU", \
  NaN with linespoints lt 3 title "plain code, one thread", \
  NaN with linespoints lt 4 title "library, one thread", \
  NaN with linespoints lt 5 title "library, all threads", \
  NaN with linespoints lt 6 title "GPU kernels", \
  NaN with linespoints lt 7 title "GPU with copies"
unset multiplot
