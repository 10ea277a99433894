# gnuplot 002_figure_6.gp makes 002_figure_6.svg.
set encoding utf8
set terminal svg size 860,420 noenhanced font 'sans,11' background 'white'
set output '002_figure_6.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "blocks a thread"
set format x '%.0f'
set xtics rotate by -40
set key outside right top
set title "Figure 6: reads of global memory, each thread a stretch of its own"
set format y '%.0s %cB/s'
plot '002_figure_6.dat' using 1:2 with linespoints lt 1 title "4096 threads", \
  '002_figure_6.dat' using 1:3 with linespoints lt 2 title "65536 threads", \
  '002_figure_6.dat' using 1:4 with linespoints lt 3 title "1048576 threads"
